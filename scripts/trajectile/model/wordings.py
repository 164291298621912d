"""What providers write when they mean one of a few things; each pattern is matched against code, type and message."""

import re


def _any(*wordings: str) -> re.Pattern[str]:
    return re.compile("|".join(wordings), re.IGNORECASE)


OVERFLOW = _any(
    r"context[_ ]length[_ ]exceeded",
    r"exceed_context_size",
    r"(maximum|max) (context|prompt|model|input) (length|size)",
    r"(context|maximum) (window|length|size)[^.]{0,40}(exceed|overflow)",
    r"exceed[^.]{0,60}(context|token limit|maximum number of tokens|max(imum)? length)",
    r"(longer|greater) than the (model'?s )?(maximum )?(context|model) length",
    r"(prompt|input|request)( is| was)? too (long|large)( for|:|$|\b)",
    r"too many (input )?tokens",
    r"reduce the length of (the|your) (messages|prompt|input)",
    r"too large for model with",
    r"tokens`? \+ `?max_new_tokens`? must be",
    r"range of input length should be",
    r"context (the )?overflows",
    r"request_too_large",
)
FILTERED = _any(
    r"content[_ ](filter|management|policy)",
    r"responsible ?ai ?policy",
    r"data_?inspection_?failed",
    r"inappropriate content",
    r"content exists risk",
    r"considered high risk",
    r"requires moderation",
    r"(prompt|input|content) (was|has been|is) flagged",
    r"prohibited_content",
    r"safety system",
)
NO_CREDIT = _any(
    r"insufficient_quota",
    r"billing_(hard_limit_reached|not_active)",
    r"credit balance is too low",
    r"insufficient (credits|balance|funds)",
)
WRONG_KEY = _any(r"(invalid|incorrect) api key", r"api[_ ]key[_ ](not valid|invalid)", r"invalid_api_key")
NO_MODEL = _any(
    r"model_not_found",
    r"(the )?model\b.{0,120}(does not exist|not found)",
    r"(not a valid|invalid|unknown|no such) model",
)
# the model wrote a tool call that the server cannot parse: another draw may do better
BAD_CALL = _any(
    r"does not match the expected",
    r"tool_use_failed",
    r"failed to (call a function|parse (the )?(tool|function|input))",
    r"model produced invalid",
)
