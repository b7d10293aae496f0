package main

// explained are the tests of CPython's that come to something else in a run, each with why it stays so.
var explained = map[string]string{
	"test.test_zipfile.PyZipFileTests.test_write_filtered_python_package": systemReadOnly,
	"test.test_zipfile.PyZipFileTests.test_write_pyfile":                  systemReadOnly,
	"test.test_zipfile.PyZipFileTests.test_write_python_package":          systemReadOnly,
	"test.test_zipfile.PyZipFileTests.test_write_with_optimization":       systemReadOnly,
}

const systemReadOnly = "skipped: root may write to /usr, and a run may not"
