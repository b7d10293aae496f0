package main

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"airlock/internal/units"
)

// configKey is one key of the configuration: "limits.timeout", "packages.r.repo".
type configKey struct {
	name  string
	index []int // of the field in Config, for reflect
	typ   reflect.Type
}

// configKeys lists the keys in the order of the fields of Config. The fields' tags are the only place
// where the names of keys are written.
func configKeys() []configKey {
	var keys []configKey
	var walk func(t reflect.Type, name string, index []int)
	walk = func(t reflect.Type, name string, index []int) {
		for i := range t.NumField() {
			f := t.Field(i)
			fieldName := strings.TrimPrefix(name+"."+f.Tag.Get("toml"), ".")
			fieldIndex := append(slices.Clone(index), i)
			if f.Type.Kind() == reflect.Struct {
				walk(f.Type, fieldName, fieldIndex)
				continue
			}
			keys = append(keys, configKey{fieldName, fieldIndex, f.Type})
		}
	}
	walk(reflect.TypeFor[Config](), "", nil)
	return keys
}

// findKey returns the key of that name.
func findKey(name string) (configKey, bool) {
	keys := configKeys()
	i := slices.IndexFunc(keys, func(k configKey) bool { return k.name == name })
	if i < 0 {
		return configKey{}, false
	}
	return keys[i], true
}

// get returns the key's value in c.
func (k configKey) get(c *Config) any {
	return reflect.ValueOf(c).Elem().FieldByIndex(k.index).Interface()
}

// set puts a value into c. It must be of the key's type.
func (k configKey) set(c *Config, value any) {
	reflect.ValueOf(c).Elem().FieldByIndex(k.index).Set(reflect.ValueOf(value))
}

// variable is the name of the environment variable that sets the key.
func (k configKey) variable() string {
	return "AIRLOCK_" + strings.ToUpper(strings.ReplaceAll(k.name, ".", "_"))
}

// isText reports whether the key's value is written as a TOML string, whatever it is in Go.
func (k configKey) isText() bool {
	return k.typ.Kind() == reflect.String || reflect.PointerTo(k.typ).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// checkShape reports whether a value that TOML decoded is of the kind that the key takes. The text
// of the error never holds the value.
func (k configKey) checkShape(value any) error {
	var ok bool
	var takes string
	switch {
	case k.isText():
		_, ok = value.(string)
		takes = "a text in quotes"
		switch k.typ {
		case reflect.TypeFor[units.Duration]():
			takes += `, as in "90s" or "2m"`
		case reflect.TypeFor[units.Size]():
			takes += `, as in "512MiB" or "4GiB"`
		}
	case k.typ.Kind() == reflect.Bool:
		_, ok = value.(bool)
		takes = "true or false"
	case k.typ.Kind() == reflect.Int:
		_, ok = value.(int64)
		takes = "a whole number"
	case k.typ.Kind() == reflect.Float64:
		_, whole := value.(int64)
		_, ok = value.(float64)
		ok = ok || whole
		takes = "a number"
	case k.typ.Kind() == reflect.Slice:
		list, isList := value.([]any)
		ok = isList && !slices.ContainsFunc(list, isNotText)
		takes = `a list of texts, as in ["a", "b"]`
	case k.typ.Kind() == reflect.Map:
		var table map[string]any
		table, ok = value.(map[string]any)
		for _, v := range table {
			ok = ok && !isNotText(v)
		}
		takes = `a table of texts, as in { a = "b" }`
	}
	if !ok {
		return fmt.Errorf("takes %s, not %s", takes, kindOf(value))
	}
	return nil
}

func isNotText(v any) bool {
	_, ok := v.(string)
	return !ok
}

// kindOf names the kind of a value that TOML decoded.
func kindOf(v any) string {
	switch v.(type) {
	case string:
		return "a text"
	case bool:
		return "true or false"
	case int64, float64:
		return "a number"
	case time.Time:
		return "a date"
	case []any:
		return "a list with other things in it"
	case map[string]any:
		return "a table with other things in it"
	default:
		return "a list of tables"
	}
}
