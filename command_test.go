package main

import (
	"slices"
	"testing"
)

// Each synonym leads to a command, and to one only.
func TestSynonyms(t *testing.T) {
	names := commandNames()
	of := map[string]string{}
	for command, words := range synonyms {
		if !slices.Contains(names, command) {
			t.Errorf("%v is for %s, which is no command", words, command)
		}
		for _, word := range words {
			if slices.Contains(names, word) {
				t.Errorf("%s is a command", word)
			}
			if other, ok := of[word]; ok {
				t.Errorf("%s is for %s and %s", word, command, other)
			}
			of[word] = command
		}
	}
}
