"""A program at the command line: what the user can mend is said in words, with status 2 and without a traceback."""

from typing import Any

import click

from trajectile.errors import FatalError, UserError


class Refusal(click.ClickException):
    """An error that the user can mend: its message on stderr, status 2."""

    exit_code = 2


class Step(click.Command):
    """A command that turns a UserError or FatalError into a Refusal."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (UserError, FatalError) as error:
            raise Refusal(str(error)) from error
