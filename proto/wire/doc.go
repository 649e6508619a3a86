// Package wire carries records across boundaries: as the protobuf messages of
// package bursarv1 and as the JSON of AUDITOR's interface and of /v1.
//
// Nothing reflects, because every record passes here several times. The protobuf bytes
// are those of the generated code.
//
// # Ownership
//
// What the functions of this package decode belongs to the caller, who may keep and
// share it: nothing of it changes when the input does. Where that would cost a copy too
// many, a [Lender] decodes: the texts of what it returns are views into the input, which
// must not change as long as they are in use, and stays in memory as long.
//
// # Trust
//
// Decoders take any bytes: they return an error or a value, never panic, and
// take no more memory than a small multiple of the input. The JSON decoders
// validate what they return. The protobuf decoders check the encoding only; what
// comes from elsewhere needs [record.Record.Validate].
package wire
