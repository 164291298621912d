"""Toolset `tts`: text to speech."""
