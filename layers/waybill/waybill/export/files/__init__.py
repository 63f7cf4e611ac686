"""Writes lineage as files of lines in S3. A batch counts by its manifest, which is written once, after its files.

- `config`: the properties of a FileAssetExporter.
- `keys`: key templates, folders and names of objects.
- `lines`: what one event looks like as a line.
- `series`: lines go in, files come out; `pipeline`, `compression` and `upload` are their way to the `destination`.
- `manifest`, `manifests`: the commit: which files count, and up to where.
- `exporter`: the exporter that the engine drives.
- `verify`: compares manifests and files with the log; `reading` reads the files back.
"""
