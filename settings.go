package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"airlock/internal/pattern"
)

// originKind is a rank of configuration. Where two set one key, the later in this list wins, but for
// the project's policy, which only narrows and has rules of its own (see narrowings).
type originKind string

const (
	fromDefault  originKind = "default"
	fromFile     originKind = "file"
	fromPolicy   originKind = "project policy"
	fromVariable originKind = "variable"
	fromFlag     originKind = "flag"
)

// origin is where a value was written.
type origin struct {
	Kind originKind `json:"kind"`
	Name string     `json:"name,omitempty"` // a path, a variable's or a flag's name
	Line int        `json:"line,omitempty"` // in a file; 0 where it isn't known
}

// String gives the form in which errors begin: "/home/u/.config/airlock/config.toml:3".
func (o origin) String() string {
	switch {
	case o.Kind == fromDefault:
		return "default"
	case o.Line > 0:
		return fmt.Sprintf("%s:%d", o.Name, o.Line)
	}
	return o.Name
}

// settings is a configuration that remembers where each value comes from.
type settings struct {
	Config
	// origins holds, by the key's name, where the value was written: several places for a list that
	// the project's policy adds to, none for a default.
	origins map[string][]origin
	home    string // the person's, which a leading "~" of a path stands for
}

// userSettings reads what the user says: defaults, file, variables and flags, the later winning over
// the earlier. The file may be missing unless it was named. Everything is validated.
func userSettings(file configFile, environ []string, flags []flagValue) (settings, error) {
	places, err := findPlaces(environ)
	if err != nil {
		return settings{}, err
	}
	s := settings{Config: Defaults(), origins: map[string][]origin{}, home: places.home}

	var docs []document
	text, err := file.read()
	if err != nil {
		return settings{}, err
	}
	docs = append(docs, document{origin: origin{Kind: fromFile, Name: file.path}, text: text})
	variables, err := variableDocuments(environ)
	if err != nil {
		return settings{}, err
	}
	docs = append(docs, variables...)
	for _, f := range flags {
		docs = append(docs, f.key.document(origin{Kind: fromFlag, Name: f.flag}, f.value))
	}

	var faults []error
	for _, doc := range docs {
		d, err := doc.decode()
		if err != nil {
			faults = append(faults, err)
			continue
		}
		for _, key := range d.keys {
			key.set(&s.Config, key.fromHome(key.get(&d.config), s.home))
			s.origins[key.name] = []origin{doc.at(d.lines[key.name])}
		}
	}
	if len(faults) > 0 {
		return settings{}, errors.Join(faults...)
	}
	return s, s.check()
}

// configFile is the user's configuration file.
type configFile struct {
	path  string
	named bool // by a flag or a variable: then it must exist
}

func (f configFile) read() ([]byte, error) {
	text, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) && !f.named {
		return nil, nil
	}
	if err != nil {
		return nil, &fault{Where: f.path, Msg: "the configuration can't be read: " + cause(err).Error()}
	}
	return text, nil
}

// check validates the values and names where a bad one was written.
func (s settings) check() error {
	err := s.Config.Validate()
	if err == nil {
		return nil
	}
	var faults []error
	for _, one := range flatten(err) {
		faults = append(faults, s.attribute(one))
	}
	return errors.Join(faults...)
}

// element is the index that a section may put behind a key's name: "workspace.protect[2]".
var element = pattern.Lazy(`\[[0-9]+\]$`)

// attribute makes a fault of a section's error, which begins with the key. What a project's policy
// wrote is not repeated.
func (s settings) attribute(err error) error {
	name, msg, ok := strings.Cut(err.Error(), ": ")
	key, known := findKey(element().ReplaceAllString(name, ""))
	if !ok || !known {
		return err
	}
	f := &fault{Key: name, Msg: msg}
	origins := s.origins[key.name]
	for word := range strings.FieldsSeq(msg) { // a default that is wrong only beside another key: it is that which was written
		if len(origins) == 0 {
			origins = s.origins[strings.Trim(word, ",;:")]
		}
	}
	if len(origins) == 0 {
		return f
	}
	from := origins[len(origins)-1]
	f.Where = from.String()
	if from.Kind == fromPolicy {
		f.Msg = withoutValue(key.name, msg)
	}
	return f
}

// withoutValue is what a section says of a bad value of a key, without the value, where it is known how it says that. What is kept is
// airlock's own text: a value stands before it, in quotes or as the number that it was read as.
func withoutValue(key, msg string) string {
	if aboutTwoKeys().MatchString(msg) {
		return msg
	}
	if m := valueFault().FindStringSubmatch(msg); m != nil {
		return "the value " + m[1]
	}
	if takes := takenBy[key]; takes != "" {
		return "is not a value that this key takes; it takes " + takes
	}
	return "is not a value that this key takes"
}

var (
	aboutTwoKeys = pattern.Lazy(`^("direct" (isolates nothing; |has n)|nothing (hides|bounds) )`)
	valueFault   = pattern.Lazy(`^(?:"(?:[^"\\]|\\.)*"|-?[0-9][0-9A-Za-z.]*|NaN) (is not one of [a-z, ]+$|is not a tool; there are [a-z_, ]+$|is not a glob` +
		`|is not a size; write .*|is not a duration; write .*|is not an absolute path; write .*|is not between [0-9A-Za-z]+ and [0-9A-Za-z]+$|is less than [0-9A-Za-z]+$` +
		`|is not a number of cores; 0 is all of them$|is not the name of a variable)`)
)

// takenBy says what the keys take that have patterns for values.
var takenBy = map[string]string{
	"network.allow":    hostsTaken,
	"network.deny":     hostsTaken,
	"network.private":  `CIDR prefixes, as in "10.0.0.0/8"`,
	"packages.allow":   requirementsTaken,
	"packages.deny":    requirementsTaken,
	"packages.r.allow": namesTaken,
	"packages.r.deny":  namesTaken,
}

const (
	hostsTaken        = `"host", "*.host", "host:port" and "host:*"`
	requirementsTaken = `requirements, as in "six" or "numpy>=1.26"`
	namesTaken        = `names of packages, as in "jsonlite" or "jsonlite>=1.8"`
)

// flatten lists the errors that were joined into one.
func flatten(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, one := range joined.Unwrap() {
		all = append(all, flatten(one)...)
	}
	return all
}

// clone returns settings that can be changed without changing s.
func (s settings) clone() settings {
	c := settings{Config: s.Config, origins: map[string][]origin{}, home: s.home}
	for name, o := range s.origins {
		c.origins[name] = slices.Clone(o)
	}
	return c
}
