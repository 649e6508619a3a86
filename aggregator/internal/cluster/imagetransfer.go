package cluster

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

// How nodes hand images to each other, and a leader its history, after the greeting:
//
//	caller: u16 length | order          what it has (offer) or wants (fetch), or its history
//	server: one byte                    go on, have it, not here, no
//	the archive, from who has it
//	receiver of an offer: one byte      kept, no
const (
	imageGo   byte = 1 // send it, or: it follows
	imageHave byte = 2
	imageNone byte = 3
	imageNo   byte = 4
)

// imageStall is how long the other end may be silent in the middle of an image;
// imageSync is how long it may take to verify it and make it durable.
const (
	imageStall = 30 * time.Second
	imageSync  = 15 * time.Minute
)

var (
	errNotHere = errors.New("the image is not here")
	errNotKept = errors.New("the image was not taken")
)

// patient gives every read and write a limit of its own, so that an image may
// take as long as it needs and no one may stop in the middle.
type patient struct{ *Conn }

// Read reads within imageStall.
func (p patient) Read(b []byte) (int, error) {
	if err := p.SetReadDeadline(time.Now().Add(imageStall)); err != nil {
		return 0, err
	}
	return p.Conn.Read(b)
}

// Write writes within imageStall.
func (p patient) Write(b []byte) (int, error) {
	if err := p.SetWriteDeadline(time.Now().Add(imageStall)); err != nil {
		return 0, err
	}
	return p.Conn.Write(b)
}

func sendText(w io.Writer, text []byte) error {
	_, err := w.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(text))), text...))
	return err
}

func receiveText(r io.Reader) ([]byte, error) {
	var size [2]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	text := make([]byte, binary.BigEndian.Uint16(size[:]))
	_, err := io.ReadFull(r, text)
	return text, err
}

func sendByte(w io.Writer, b byte) error {
	_, err := w.Write([]byte{b})
	return err
}

func receiveByte(r io.Reader) (byte, error) {
	var b [1]byte
	_, err := io.ReadFull(r, b[:])
	return b[0], err
}

// dialMember opens a connection to a member and says what it is about.
func (n *Node) dialMember(ctx context.Context, to Server, use byte, about []byte) (*Conn, func(), error) {
	s, ok := n.conf.Stream.(*raftStream)
	if !ok {
		return nil, nil, errors.New("this node cannot reach others")
	}
	c, err := s.t.greetNode(ctx, to, use)
	if err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { hangUp(c) })
	end := func() {
		stop()
		hangUp(c)
	}
	if err := sendText(patient{c}, about); err != nil {
		end()
		return nil, nil, err
	}
	return c, end, nil
}

// sendImageTo has a member keep the image.
func (n *Node) sendImageTo(ctx context.Context, to Server, o order) error {
	if to.ID == n.id {
		return nil
	}
	about, err := o.encodeOrder()
	if err != nil {
		return err
	}
	c, end, err := n.dialMember(ctx, to, forOffer, about)
	if err != nil {
		return err
	}
	defer end()
	what, err := receiveByte(patient{c})
	if err != nil || what == imageHave {
		return err
	}
	if what != imageGo {
		return errNotKept
	}
	if err := n.sendImage(c, o); err != nil {
		return err
	}
	if err := c.SetReadDeadline(time.Now().Add(imageSync)); err != nil {
		return err
	}
	what, err = receiveByte(c)
	if err == nil && what != imageHave {
		err = errNotKept
	}
	return err
}

func (n *Node) sendImage(c *Conn, o order) error {
	f, err := n.imageStore.openImage(o)
	if err != nil {
		return err
	}
	defer f.Close()
	sent, err := io.Copy(patient{c}, f)
	if err == nil && sent != o.Size {
		err = fmt.Errorf("%w: image %s has %d bytes", ErrCorrupt, o.SHA256, sent)
	}
	return err
}

// fetchFrom gets the image from a member.
func (n *Node) fetchFrom(ctx context.Context, from Server, o order) error {
	about, err := o.encodeOrder()
	if err != nil {
		return err
	}
	c, end, err := n.dialMember(ctx, from, forFetch, about)
	if err != nil {
		return err
	}
	defer end()
	what, err := receiveByte(patient{c})
	if err != nil {
		return err
	}
	if what != imageGo {
		return errNotHere
	}
	return n.imageStore.receiveImage(o, patient{c})
}

// handleCalls serves a connection about an image, or about a leader's history.
func (n *Node) handleCalls(g greeting, c *Conn) {
	about, err := receiveText(patient{c})
	if err == nil && g.use == forHistory {
		if err = n.hearHistory(g, c, about); err != nil {
			n.logger.Warn("the history of a leader was not taken", "from", g.from, "peer", c.Peer.String(), "error", err)
		}
		return
	}
	var o order
	if err == nil {
		o, err = readOrder(about)
	}
	switch {
	case err != nil:
	case g.use == forOffer:
		err = n.takeOffer(c, o)
	default:
		err = n.serveImage(c, o)
	}
	if err != nil {
		n.logger.Warn("an image was not handed over", "from", g.from, "peer", c.Peer.String(), "error", err)
	}
}

func (n *Node) takeOffer(c *Conn, o order) error {
	if n.imageStore.hasImage(o) {
		return sendByte(patient{c}, imageHave)
	}
	if !n.receiving.TryLock() {
		return errors.Join(errBusy, sendByte(patient{c}, imageNo))
	}
	defer n.receiving.Unlock()
	if err := sendByte(patient{c}, imageGo); err != nil {
		return err
	}
	if err := n.imageStore.receiveImage(o, patient{c}); err != nil {
		return errors.Join(err, sendByte(patient{c}, imageNo))
	}
	return sendByte(patient{c}, imageHave)
}

func (n *Node) serveImage(c *Conn, o order) error {
	if !n.imageStore.hasImage(o) {
		return sendByte(patient{c}, imageNone)
	}
	if err := sendByte(patient{c}, imageGo); err != nil {
		return err
	}
	return n.sendImage(c, o)
}
