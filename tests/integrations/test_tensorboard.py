"""TensorBoard gets what the run itself writes."""

import numpy as np

from cdqn.report.runs import read_run


def test_tensorboard_gets_the_same_numbers(finished_run):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(finished_run / "tensorboard"))
    events.Reload()
    logged = [event.value for event in events.Scalars("progress/loss")]
    np.testing.assert_allclose(logged, read_run(finished_run).curve("loss")[1], rtol=1e-6)
