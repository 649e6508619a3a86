// Package wire carries records across boundaries: as the protobuf messages of
// package bursarv1 and as the JSON of AUDITOR's interface and of /v1.
//
// Everything is written by hand, without reflection, because every record
// passes here several times. The protobuf bytes are those of the generated code.
//
// # Ownership
//
// Decoded strings are views into the input wherever that is possible: the input
// must not change as long as a decoded value is in use, and stays in memory as
// long. Whoever cannot promise that decodes a copy of the input. Slices of
// decoded values belong to the value and are never reused, so values may be kept
// and shared.
//
// # Trust
//
// Decoders take any bytes: they return an error or a value, never panic, and
// take no more memory than a small multiple of the input. The JSON decoders
// validate what they return. The protobuf decoders check the encoding only; what
// comes from elsewhere needs [record.Record.Validate].
package wire
