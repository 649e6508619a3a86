package columns

// readColumn reads a column of len(v) numbers that takes all of data into v. groups is called
// for modeGroup, which without it is an error.
func (c *codec) readColumn(v []uint64, data []byte, groups func() ([]uint32, error)) error {
	r := reader{b: data}
	err := c.readNumbers(&r, v, groups)
	if err == nil && !r.isDone() {
		err = corruptError("column is cut off or too long")
	}
	return err
}

func (c *codec) readNumbers(r *reader, v []uint64, groups func() ([]uint32, error)) error {
	mode, first := r.readByte(), zigzagValue(r.readUvarint())
	switch mode {
	case modeConst:
		accumulateSteps(v, first, 0)
		return nil
	case modeLinear:
		accumulateSteps(v, first, zigzagValue(r.readUvarint()))
		return nil
	}
	divisor := r.readUvarint()
	if mode == modeTable {
		return c.readTable(r, v, first, divisor)
	}
	if err := c.readPlanes(r, v); err != nil {
		return err
	}
	switch {
	case mode == modePlain:
		restorePlain(v, first, divisor)
	case mode == modeDelta:
		restoreDeltas(v, first, divisor)
	case mode == modeGroup && groups != nil:
		return restoreGroups(v, first, divisor, groups)
	default:
		return corruptError("column of unknown mode %d", mode)
	}
	return nil
}

func accumulateSteps(v []uint64, first, step uint64) {
	for i := range v {
		v[i] = first
		first += step
	}
}

func restorePlain(v []uint64, least, divisor uint64) {
	if divisor == 1 {
		for i := range v {
			v[i] += least
		}
		return
	}
	for i := range v {
		v[i] = least + v[i]*divisor
	}
}

func restoreDeltas(v []uint64, previous, divisor uint64) {
	for i := range v {
		previous += zigzagValue(v[i]) * divisor
		v[i] = previous
	}
}

func restoreGroups(v []uint64, least, divisor uint64, groups func() ([]uint32, error)) error {
	group, err := groups()
	if err != nil {
		return err
	}
	previous := previousOf(group, least)
	for i, g := range group {
		previous[g] += zigzagValue(v[i]) * divisor
		v[i] = previous[g]
	}
	return nil
}

func (c *codec) readTable(r *reader, v []uint64, least, divisor uint64) error {
	count := r.readUvarint()
	if count == 0 || count > tableSize {
		return corruptError("column has a table of %d", count)
	}
	var values [tableSize]uint64
	for i := range count {
		values[i] = least + r.readUvarint()*divisor
	}
	plane, err := c.plain8(r, len(v), 0)
	if err != nil {
		return err
	}
	for i, k := range plane[:len(v)] {
		v[i] = values[k]
	}
	return nil
}

func (c *codec) plain8(r *reader, n, p int) ([]byte, error) {
	if cap(c.planes[p]) < n {
		c.planes[p] = make([]byte, max(n, MaxRows))
	}
	return c.readStream(r, n, c.planes[p])
}

func (c *codec) readPlanes(r *reader, v []uint64) error {
	width := int(r.readByte())
	if width < 1 || width > 8 {
		return corruptError("column of width %d", width)
	}
	var planes [8][]byte
	for p := range width {
		plane, err := c.plain8(r, len(v), p)
		if err != nil {
			return err
		}
		planes[p] = plane
	}
	joinPlanes(v, planes[:width])
	return nil
}

// joinPlanes puts the planes together, up to four in one pass.
func joinPlanes(v []uint64, planes [][]byte) {
	switch len(planes) {
	case 1:
		a := planes[0][:len(v)]
		for i := range v {
			v[i] = uint64(a[i])
		}
	case 2:
		a, b := planes[0][:len(v)], planes[1][:len(v)]
		for i := range v {
			v[i] = uint64(a[i]) | uint64(b[i])<<8
		}
	case 3:
		a, b, c := planes[0][:len(v)], planes[1][:len(v)], planes[2][:len(v)]
		for i := range v {
			v[i] = uint64(a[i]) | uint64(b[i])<<8 | uint64(c[i])<<16
		}
	default:
		joinWide(v, planes)
	}
}

func joinWide(v []uint64, planes [][]byte) {
	a, b, c, d := planes[0][:len(v)], planes[1][:len(v)], planes[2][:len(v)], planes[3][:len(v)]
	for i := range v {
		v[i] = uint64(a[i]) | uint64(b[i])<<8 | uint64(c[i])<<16 | uint64(d[i])<<24
	}
	for p := 4; p < len(planes); p++ {
		plane, shift := planes[p][:len(v)], 8*p
		for i := range v {
			v[i] |= uint64(plane[i]) << shift
		}
	}
}
