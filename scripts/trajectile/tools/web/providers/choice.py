"""Which provider a run asks."""

from trajectile.configuration.settings import Settings
from trajectile.model.errors import WrongKey
from trajectile.tools.web.providers import brave, ddgs, exa, firecrawl, searxng, tavily
from trajectile.tools.web.providers.provider import Provider

# In the order that `auto` tries them.
ORDER: tuple[Provider, ...] = (
    searxng.PROVIDER,
    tavily.PROVIDER,
    exa.PROVIDER,
    firecrawl.PROVIDER,
    brave.PROVIDER,
    ddgs.PROVIDER,
)
PROVIDERS = {provider.name: provider for provider in ORDER}


def choose(settings: Settings) -> Provider:
    """The provider that web_provider names; for auto the first that lacks nothing, ddgs at last."""
    if settings.web_provider != "auto":
        return PROVIDERS[settings.web_provider]
    return next((each for each in ORDER if not each.lacks(settings)), ddgs.PROVIDER)


def lacks(settings: Settings) -> str:
    try:
        return choose(settings).lacks(settings)
    except WrongKey as error:
        return str(error)
