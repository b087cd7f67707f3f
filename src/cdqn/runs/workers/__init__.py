"""Tasks in processes of their own (`tasks`): of this machine (`local`), or of others (`cluster`)."""
