package v1

import (
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/bursar-accounting/bursar/proto/record"
)

// DecodeQuery decodes the raw query of a request into out, which points to a query of this
// package or to a struct like it, with all fields zero. The tags of a field say how: `query` is
// its name, `enum` the texts that are allowed, `min` and `max` the range of a number, and a
// `list` may be given several times, which is one list of [JoinList]. Brackets may be
// percent-encoded, and a list in brackets may lack its index, as clients of AUDITOR do.
//
// An empty value is as if it were not there, but for maps of texts, whose keys it sets, and
// for lists in brackets and fields of type uint64, positions of the feed, where it is an error. Fields that are not known, values that are not
// understood and values that are given twice are errors for the client.
func DecodeQuery(raw string, out any) error {
	d := queryDecoder{seen: map[string]bool{}}
	for pair := range strings.SplitSeq(raw, "&") {
		if pair == "" {
			continue
		}
		if err := d.decodePair(pair, reflect.ValueOf(out).Elem()); err != nil {
			return err
		}
	}
	return nil
}

// queryDecoder decodes a query pair by pair.
type queryDecoder struct{ seen map[string]bool }

func (d *queryDecoder) decodePair(pair string, out reflect.Value) error {
	rawKey, rawValue, _ := strings.Cut(pair, "=")
	key, err := url.QueryUnescape(rawKey)
	if err != nil {
		return fmt.Errorf("%q is not percent-encoded", rawKey)
	}
	value, err := url.QueryUnescape(rawValue)
	if err != nil {
		return fmt.Errorf("the value of %s is not percent-encoded: %q", key, rawValue)
	}
	path, err := splitKey(rawKey, key)
	if err != nil {
		return err
	}
	return d.setField(out, queryKey{whole: key, name: path[0]}, path[1:], value)
}

// maxDepth is how many brackets a key may have.
const maxDepth = 5

// splitKey cuts a[b][c] into a, b and c. Brackets that are percent-encoded count as brackets
// only where the key has no literal ones.
func splitKey(raw, key string) (path []string, err error) {
	literal := strings.Contains(raw, "[")
	text := key
	if literal {
		text = raw
	}
	field, rest, _ := strings.Cut(text, "[")
	path = append(path, field)
	if len(rest) == 0 {
		return path, nil
	}
	if !strings.HasSuffix(rest, "]") {
		return nil, fmt.Errorf("the brackets of %q do not match", key)
	}
	for part := range strings.SplitSeq(rest[:len(rest)-1], "][") {
		if literal {
			if part, err = url.QueryUnescape(part); err != nil {
				return nil, fmt.Errorf("%q is not percent-encoded", part)
			}
		}
		path = append(path, part)
	}
	if len(path) > maxDepth+1 {
		return nil, fmt.Errorf("%q has more than %d brackets", key, maxDepth)
	}
	return path, nil
}

// queryKey is how far a key of a query is read.
type queryKey struct {
	whole         string // all of it
	before, after string // what stands around the name: nothing, or brackets
	name          string
}

func (k queryKey) String() string { return k.before + k.name + k.after }

// within is the key of a name in brackets behind it.
func (k queryKey) within(name string) queryKey {
	return queryKey{k.whole, k.String() + "[", "]", name}
}

// setField sets the field of the struct v that the key names.
func (d *queryDecoder) setField(v reflect.Value, key queryKey, path []string, value string) error {
	field, tag, found := findQueryField(v, key.name, len(path) > 0)
	switch {
	case !found:
		return fmt.Errorf("unknown field `%s`, expected one of %s", key, quotedFields(v.Type(), key))
	case len(path) == 0 && isBracketed(field.Type()):
		return fmt.Errorf("`%s` takes brackets, as in %s=…", key, exampleKey(field.Type(), key))
	case field.Kind() == reflect.Map:
		return d.setEntry(field, key, path, value)
	case isBracketed(field.Type()):
		return d.setField(field, key.within(path[0]), path[1:], value)
	case field.Kind() == reflect.Slice && key.before != "":
		return d.addElement(field, key, path, value)
	case len(path) > 0:
		return fmt.Errorf("`%s` takes a plain value, as in %s=…", key, key)
	}
	return d.setValue(field, tag, key, value)
}

// setEntry sets a value of a map: a text, or a field of a struct.
func (d *queryDecoder) setEntry(m reflect.Value, key queryKey, path []string, value string) (err error) {
	elem, name := reflect.New(m.Type().Elem()).Elem(), path[0]
	if elem.Kind() == reflect.String {
		name = strings.Join(path, "][")
		if err := d.checkRepeated(key.within(name)); err != nil {
			return err
		}
		elem.SetString(value)
	} else {
		if key = key.within(name); len(path) < 2 {
			return fmt.Errorf("`%s` takes brackets, as in %s=…", key, exampleKey(elem.Type(), key))
		}
		if before := m.MapIndex(reflect.ValueOf(name)); before.IsValid() {
			elem.Set(before)
		}
		if err := d.setField(elem, key.within(path[1]), path[2:], value); err != nil || elem.IsZero() {
			return err
		}
	}
	if m.IsNil() {
		m.Set(reflect.MakeMap(m.Type()))
	}
	m.SetMapIndex(reflect.ValueOf(name), elem)
	return nil
}

// addElement adds a value to a list in brackets, which may have its index behind it.
func (d *queryDecoder) addElement(list reflect.Value, key queryKey, path []string, value string) error {
	if len(path) > 1 {
		return fmt.Errorf("`%s` is a list, as in %s[0]=…", key, key)
	}
	if len(path) == 1 && path[0] != "" {
		if _, err := strconv.ParseUint(path[0], 10, 31); err != nil {
			return fmt.Errorf("%s: %q: want the index of a list, as in [0]", key, path[0])
		}
		if err := d.checkRepeated(key.within(path[0])); err != nil {
			return err
		}
	}
	if value == "" {
		return fmt.Errorf("%s: the value is empty", key.whole)
	}
	list.Set(reflect.Append(list, reflect.ValueOf(value)))
	return nil
}

func (d *queryDecoder) checkRepeated(key queryKey) error {
	if d.seen[key.whole] {
		return fmt.Errorf("%s given more than once", key.whole)
	}
	d.seen[key.whole] = true
	return nil
}

// setValue sets a field without brackets, or within the last ones.
func (d *queryDecoder) setValue(field reflect.Value, tag reflect.StructTag, key queryKey, value string) error {
	if _, list := tag.Lookup("list"); list && value != "" {
		if before := field.String(); before != "" {
			value = JoinList(SplitList(before, value)...)
		}
		field.SetString(value)
		return nil
	}
	if field.Kind() == reflect.Slice { // a field that may be given several times
		if value != "" {
			field.Set(reflect.Append(field, reflect.ValueOf(value)))
		}
		return nil
	}
	if err := d.checkRepeated(key); err != nil {
		return err
	}
	of := field.Type()
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if value == "" && of.Kind() != reflect.Uint64 {
		return nil
	}
	if field.Kind() == reflect.Pointer {
		field.Set(reflect.New(of))
		field = field.Elem()
	}
	if _, is := reflect.TypeAssert[Time](field); is {
		return setTime(field, key, value)
	}
	switch field.Kind() {
	case reflect.Bool:
		if value != "true" && value != "false" {
			return fmt.Errorf("%s is %q, want true or false", key, value)
		}
		field.SetBool(value == "true")
	case reflect.Int, reflect.Uint64:
		return setNumber(field, tag, key, value)
	default:
		if allowed := tag.Get("enum"); allowed != "" && !slices.Contains(strings.Split(allowed, ","), value) {
			return fmt.Errorf("%s is %q, want %s", key, value, orWords(strings.Split(allowed, ",")))
		}
		field.SetString(value)
	}
	return nil
}

// errNoInstant says that an instant cannot be asked about, since it stands for none.
var errNoInstant = errors.New("the first instant of the year 1 cannot be asked about")

func setTime(field reflect.Value, key queryKey, value string) error {
	at, err := record.ParseTime(value)
	if stamp := Stamp(at); err == nil {
		field.Set(reflect.ValueOf(stamp))
		if stamp.IsZero() {
			err = errNoInstant
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

func setNumber(field reflect.Value, tag reflect.StructTag, key queryKey, value string) error {
	n, err := strconv.ParseUint(value, 10, 64)
	low, high := bound(tag, "min", 0), bound(tag, "max", 1<<64-1)
	if field.Kind() == reflect.Int {
		high = min(high, 1<<63-1)
	}
	switch {
	case err == nil && low <= n && n <= high:
		if field.Kind() == reflect.Int {
			field.SetInt(int64(n)) //nolint:gosec // within its range
		} else {
			field.SetUint(n)
		}
		return nil
	case tag.Get("max") != "":
		return fmt.Errorf("%s is %q, want a whole number from %d to %d", key, value, low, high)
	}
	return fmt.Errorf("%s is %q, want a whole number of %d or more", key, value, low)
}

// bound is a number of a tag, or another one without it.
func bound(tag reflect.StructTag, name string, without uint64) uint64 {
	n, err := strconv.ParseUint(tag.Get(name), 10, 64)
	if err != nil {
		return without
	}
	return n
}

// isBracketed reports whether values of a type stand below brackets.
func isBracketed(t reflect.Type) bool {
	return t.Kind() == reflect.Map || t.Kind() == reflect.Struct && t != reflect.TypeFor[Time]()
}

// findQueryField returns the field of a name, and its tag. Where two have the name, brackets says
// which is wanted.
func findQueryField(v reflect.Value, name string, brackets bool) (found reflect.Value, tag reflect.StructTag, ok bool) {
	for field, value := range v.Fields() {
		if field.Anonymous {
			if f, t, is := findQueryField(value, name, brackets); is {
				return f, t, true
			}
			continue
		}
		if field.Tag.Get("query") == name {
			found, tag, ok = value, field.Tag, true
			if isBracketed(field.Type) == brackets {
				return found, tag, ok
			}
		}
	}
	return found, tag, ok
}

// quotedFields are the names of the fields of a struct, as they stand in the place of a key.
func quotedFields(t reflect.Type, key queryKey) string {
	var names []string
	for field := range t.Fields() {
		switch {
		case field.Anonymous:
			names = append(names, quotedFields(field.Type, key))
		case field.Type.Kind() == reflect.Map && field.Type.Elem().Kind() == reflect.String:
			names = append(names, "`"+field.Tag.Get("query")+"[KEY]`")
		default:
			key.name = field.Tag.Get("query")
			names = append(names, "`"+key.String()+"`")
		}
	}
	return strings.Join(slices.Compact(names), ", ")
}

// exampleKey is a key of a type that takes brackets.
func exampleKey(t reflect.Type, key queryKey) string {
	if t.Kind() == reflect.Map {
		if key, t = key.within("KEY"), t.Elem(); t.Kind() != reflect.Struct {
			return key.String()
		}
	}
	return key.within(t.Field(0).Tag.Get("query")).String()
}

// orWords are the words of which one is wanted.
func orWords(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// queryValues writes the parameters of a query that are set. What stands below a parameter,
// such as the keys of where, stands in brackets behind its name.
func queryValues(query any) url.Values {
	out := url.Values{}
	if v := reflect.ValueOf(query); !v.IsNil() {
		addFields(out, "", "", v.Elem())
	}
	return out
}

func addFields(out url.Values, before, after string, v reflect.Value) {
	for field, value := range v.Fields() {
		switch {
		case field.Anonymous:
			addFields(out, before, after, value)
		case !value.IsZero():
			addValue(out, before+field.Tag.Get("query")+after, value)
		}
	}
}

func addValue(out url.Values, name string, v reflect.Value) {
	if at, is := reflect.TypeAssert[Time](v); is {
		out.Set(name, at.String())
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		addFields(out, name+"[", "]", v)
	case reflect.Map:
		for key, value := range v.Seq2() {
			addValue(out, name+"["+key.String()+"]", value)
		}
	case reflect.Slice:
		for i, value := range v.Seq2() {
			if strings.HasSuffix(name, "]") {
				out.Set(fmt.Sprintf("%s[%d]", name, i.Int()), value.String())
				continue
			}
			out.Add(name, value.String())
		}
	default:
		out.Set(name, fmt.Sprint(reflect.Indirect(v)))
	}
}
