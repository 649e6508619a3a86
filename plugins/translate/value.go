package translate

import (
	"encoding/json"
	"fmt"

	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// ValueOf makes a value of what [encoding/json] decodes into any, with integers and
// floats as they are. Special makes one of an object that stands for something else, and
// nil of any other; it may be nil itself.
func ValueOf(v any, special func(map[string]any) (*bursarv1.Value, error)) (*bursarv1.Value, error) {
	switch v := v.(type) {
	case nil:
		return &bursarv1.Value{}, nil
	case string:
		return &bursarv1.Value{Kind: &bursarv1.Value_StringValue{StringValue: v}}, nil
	case bool:
		return &bursarv1.Value{Kind: &bursarv1.Value_BoolValue{BoolValue: v}}, nil
	case int64:
		return &bursarv1.Value{Kind: &bursarv1.Value_IntValue{IntValue: v}}, nil
	case float64:
		return &bursarv1.Value{Kind: &bursarv1.Value_FloatValue{FloatValue: v}}, nil
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return ValueOf(n, nil)
		}
		f, err := v.Float64()
		return &bursarv1.Value{Kind: &bursarv1.Value_FloatValue{FloatValue: f}}, err
	case []any:
		list := &bursarv1.ListValue{}
		for _, e := range v {
			value, err := ValueOf(e, special)
			if err != nil {
				return nil, err
			}
			list.Values = append(list.Values, value)
		}
		return &bursarv1.Value{Kind: &bursarv1.Value_ListValue{ListValue: list}}, nil
	case map[string]any:
		if special != nil {
			if value, err := special(v); value != nil || err != nil {
				return value, err
			}
		}
		object := &bursarv1.MapValue{Values: map[string]*bursarv1.Value{}}
		for key, e := range v {
			value, err := ValueOf(e, special)
			if err != nil {
				return nil, err
			}
			object.Values[key] = value
		}
		return &bursarv1.Value{Kind: &bursarv1.Value_MapValue{MapValue: object}}, nil
	}
	return nil, fmt.Errorf("%v is not a value", v)
}
