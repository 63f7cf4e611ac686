"""The main job on an emulator: record, ship, file, and show what came of it (`make demo`)."""
