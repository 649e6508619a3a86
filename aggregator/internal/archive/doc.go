// Package archive writes and reads archives of the replicated state.
//
// An archive is a zstd frame around an image of proto/image: meta.json, the files of a
// store's checkpoint and their checksums, so that `zstd -dc FILE | tar x && sha256sum -c
// SHA256SUMS` looks into it without bursar. It is written and verified in one
// pass. DESIGN.md has the format and the reasons.
//
//	archiver.Image()          // an image of now, by hard links
//	image.Write(w)            // as an archive
//	archiver.Take(ctx, r)     // an archive, verified, with a new incarnation
//	Verify(r), ReadMeta(r)    // look at one
package archive
