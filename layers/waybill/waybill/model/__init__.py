"""The documents that users write and read, and the records that Waybill keeps. No I/O here."""
