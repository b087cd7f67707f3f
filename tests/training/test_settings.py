"""Every setting can be completed by an editor, and none that does not exist."""

import dataclasses
import typing

import cdqn
from cdqn.training.settings import Settings


def test_settings_are_the_fields_of_the_configuration():
    fields = [field.name for field in dataclasses.fields(cdqn.Config)]
    assert ["algorithm", *Settings.__annotations__] == fields


def test_choices_are_those_of_the_configuration():
    of_config, of_settings = typing.get_type_hints(cdqn.Config), typing.get_type_hints(Settings)
    chosen = {name: kind for name, kind in of_config.items() if "Literal" in str(kind)}
    assert chosen == {name: of_settings[name] for name in chosen}
    assert {name for name, kind in of_settings.items() if "Literal" in str(kind)} == set(chosen)


def test_agents_take_them_as_keywords():
    hints = typing.get_type_hints(cdqn.Agent.__init__)
    assert typing.get_args(hints["settings"]) == (Settings,)
