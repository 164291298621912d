"""Speech from the speech API of an OpenAI-compatible server."""

from typing import TYPE_CHECKING, Any

from trajectile.model import jsontext
from trajectile.model.errors import Retryable
from trajectile.model.settings import ModelSettings
from trajectile.rows import Usage
from trajectile.tools.models import ask
from trajectile.tools.tool import ToolContext

if TYPE_CHECKING:
    from trajectile.model.client import ModelClient
    from trajectile.model.reply import Answer

FORMATS = ("mp3", "wav", "opus", "aac", "flac")
VOICE = "alloy"
CHARACTERS_PRICED = 1e6


async def speak(context: ToolContext, text: str, kind: str) -> bytes:
    """A sound file of the format `kind`; its cost is counted. ValueError where there is none."""
    voice = context.settings.tts_voice or VOICE

    async def question(client: "ModelClient", deadline: float) -> bytes:
        body = {"model": client.settings.model, "input": text, "voice": voice, "response_format": kind}
        body |= client.settings.extra_body
        read = reader(client.settings)
        sound: bytes = await client.ask("/audio/speech", jsontext.dumps(body), read, deadline=deadline)
        return sound

    sound = await ask(context, "tts", question)
    price = context.settings.tts_price_per_million_characters or 0.0
    context.spend(Usage(cost=len(text) * price / CHARACTERS_PRICED))
    return sound


def reader(settings: ModelSettings) -> Any:
    """How an answer is read; it raises one of the client's errors for anything that is no sound."""
    from trajectile.model.reply import check_status

    def read(answer: "Answer", _: float) -> bytes:
        check_status(answer, settings)
        if not answer.body or answer.body[:1] in b"{<":
            raise Retryable("bad_answer", "the answer is no sound")
        return answer.body

    return read
