package main

import "testing"

func TestAProgramThatWasNotReleasedHasAVersionToo(t *testing.T) {
	if version != "" {
		t.Fatal("the version is set before a release is built")
	}
	if built() == "" {
		t.Error("no version")
	}
}
