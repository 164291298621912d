"""All formats by name. A new one is a file with a Writer, and a line here."""

from trajectile.exports.atif import AtifWriter
from trajectile.exports.format import Writer
from trajectile.exports.hermes import HermesWriter
from trajectile.exports.llamafactory import LlamaFactoryWriter
from trajectile.exports.messages import MessagesWriter
from trajectile.exports.parquet import ParquetWriter

FORMATS: dict[str, type[Writer]] = {
    writer.name: writer for writer in (MessagesWriter, HermesWriter, LlamaFactoryWriter, ParquetWriter, AtifWriter)
}
