"""Tool `text_to_speech`."""

import posixpath
import shutil

from trajectile.configuration.settings import Settings
from trajectile.tools.roles import lacks
from trajectile.tools.saving import FileNames, save
from trajectile.tools.tool import Arguments, Tool, ToolContext, as_json, error, parameters
from trajectile.tools.tts import endpoint, espeak

CHARACTERS_MAX = 4096


async def text_to_speech(context: ToolContext, arguments: Arguments) -> str:
    """Result: JSON with path and size of the sound file in the sandbox."""
    engine = endpoint if engine_of(context.settings) == "api" else espeak
    path = arguments.get("output_path") or context.own.get(FileNames).next("speech", f".{engine.FORMATS[0]}")
    kind = posixpath.splitext(path)[1].removeprefix(".").lower()
    if kind not in engine.FORMATS:
        return error(f"output_path must end in .{' or .'.join(engine.FORMATS)}, not {kind or 'nothing'}")
    sound = await engine.speak(context, arguments["text"], kind)
    await save(context.sandbox, path, sound)
    return as_json(success=True, file_path=path, format=kind, bytes=len(sound))


def engine_of(settings: Settings) -> str:
    """What speaks with these settings: api or espeak-ng."""
    if settings.tts_engine != "auto":
        return settings.tts_engine
    return "api" if settings.tts_base_url or settings.tts_model else "espeak-ng"


def requirement(settings: Settings) -> str:
    if engine_of(settings) == "api":
        return lacks(settings, "tts", "speak")
    if shutil.which(espeak.PROGRAM):
        return ""
    return f"{espeak.PROGRAM} is not installed here; install it, or set tts_base_url and tts_model to a speech endpoint"


TOOL = Tool(
    "text_to_speech",
    "tts",
    "Speak a text, into a sound file.",
    parameters(
        ["text"],
        text={"type": "string", "minLength": 1, "maxLength": CHARACTERS_MAX},
        output_path={"type": "string", "minLength": 1, "description": "file to write; named by the tool if not given"},
    ),
    text_to_speech,
    requirement,
)
