package sdk

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/url"
	"time"

	"github.com/bursar-accounting/bursar/proto/archived"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// Rows calls yield with the records that stopped in [from, to) and have their details in
// the store, in the order of stop and change, with the bytes that [archived.Sum] adds up,
// which are valid until yield returns. The seal has their sum. An answer that was broken
// off is an error.
func (d *Data) Rows(ctx context.Context, from, to time.Time, yield func(archived.Row, []byte) error) (archived.Seal, error) {
	query := url.Values{"from": {from.UTC().Format(time.RFC3339Nano)}, "to": {to.UTC().Format(time.RFC3339Nano)}}
	body, err := d.Get(ctx, targetOf("/v1/archives/rows", query), archived.StreamType)
	if err != nil {
		return archived.Seal{}, err
	}
	defer body.Close()
	return archived.ReadStream(body, yield)
}

// Archive has the store keep of the rows of the statement only what usage needs. It returns
// when that is done, however many rows there are. The same call again continues what was
// interrupted. A refusal is a *[ResponseError]: 409 says that the rows in the store are
// not those of the statement, and that nothing was removed. After any other error the
// removal may go on or stand still; the same call again finds out.
func (w *World) Archive(ctx context.Context, name string, s *archived.Statement) (archived.Archive, error) {
	body, err := json.Marshal(s)
	if err != nil {
		return archived.Archive{}, fmt.Errorf("archive %s: %w", name, err)
	}
	var out archived.Archive
	return out, w.changeArchive(ctx, "PUT", archivePath(name), "application/json", body, &out)
}

// Restore gives the rows of an archive their details again, and ends the archive: the
// store then is as if it had never been. What is restored already, and what changed since,
// stays as it is. Rows that are not of the archive are refused. The same call again
// continues what was interrupted.
func (w *World) Restore(ctx context.Context, name string, rows iter.Seq2[archived.Row, error]) (archived.Restored, error) {
	restored, err := w.sendRows(ctx, name, "restore", rows)
	if err != nil {
		return restored, err
	}
	var end archived.Restored
	err = w.changeArchive(ctx, "DELETE", archivePath(name), "", nil, &end)
	restored.Left = end.Left
	return restored, err
}

// Show gives the rows of an archive, in the order of stop, to the daemon for an answer that
// asks for them. The store stays as it is. Where no answer waits for them it is an error.
func (w *World) Show(ctx context.Context, name string, rows iter.Seq2[archived.Row, error]) error {
	_, err := w.sendRows(ctx, name, "show", rows)
	return err
}

// sendBytes is about how many bytes of rows one question carries.
const sendBytes = 2 << 20

// sendRows sends rows, and adds up what was restored.
func (w *World) sendRows(ctx context.Context, name, what string, rows iter.Seq2[archived.Row, error]) (total archived.Restored, err error) {
	var stream, bytes []byte
	var sum archived.Sum
	send := func() error {
		var out archived.Restored
		err := w.changeArchive(ctx, "POST", archivePath(name)+":"+what, archived.StreamType, archived.AppendSeal(stream, archived.Seal{Sum: sum}), &out)
		stream, sum, total.Restored = stream[:0], archived.Sum{}, total.Restored+out.Restored
		return err
	}
	for row, err := range rows {
		if err != nil {
			return total, fmt.Errorf("%s %s: %w", what, name, err)
		}
		bytes = row.Append(bytes[:0])
		stream = archived.AppendPart(stream, bytes)
		sum.Add(bytes)
		if len(stream) < sendBytes {
			continue
		}
		if err := send(); err != nil {
			return total, err
		}
	}
	if sum.Count > 0 {
		err = send()
	}
	return total, err
}

func archivePath(name string) string { return "/v1/archives/" + url.PathEscape(name) }

// changeArchive asks for a change of an archive and reads the answer into out.
func (w *World) changeArchive(ctx context.Context, method, path, kind string, body []byte, out any) error {
	a, err := w.requester.writeRows(ctx, &bursarv1.Ask_Write{Method: method, Target: path, Kind: kind, Body: body})
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, cutText(path), err)
	}
	defer func() { _ = a.Close() }() // an error of it has no meaning any more
	text, err := io.ReadAll(io.LimitReader(a, maxLine))
	if err == nil && a.status != 200 {
		return &ResponseError{Method: method, Target: path, Status: a.status, Detail: detailOf(text)}
	}
	if err == nil {
		err = json.Unmarshal(text, out)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, cutText(path), err)
	}
	return nil
}
