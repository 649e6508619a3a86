// Package frame packs the frames of an agent's buffer into chunks, which are
// stored and sent as they are.
//
// A chunk of format 1 is a header of 54 bytes and a body:
//
//	offset  size
//	     0     1  format version: 1
//	     1     1  flags: bit 0 set: the body is one S2 block
//	     2     8  sequence number of the first frame, at least 1
//	    10     4  number of frames, at least 1
//	    14     4  length of the body before compression
//	    18    16  digest of the chain before the first frame
//	    34    16  digest of the chain after the last frame
//	    50     4  CRC32C of all other bytes of the chunk
//	    54        body
//
// Numbers are little-endian. Each frame of the body is its length (uvarint), its
// CRC32C (4 bytes) and its bytes. The chain of an epoch begins with the zero
// [Digest]; see [Digest.Next].
//
// Whoever reads a chunk takes it for hostile: [Parse] checks every length before
// it allocates and every sum before it hands a frame on.
package frame
