// Runs the scripts of tests/model, which read files with packages that are not ours.
#pragma once

#include <string>
#include <vector>

namespace quire {

// Why no script can run here; empty where one can. QUIRE_PYTHON names the interpreter whose packages are those of
// tests/requirements.txt, as tools/run_tests.py sets it: then nothing may be missing, and a script that finds no
// package fails its test. Without it, python3 may have them.
std::string no_test_python();

// The exit status of tests/model/`script`, or -1 where it did not end by itself. What it prints goes nowhere.
int run_test_python(const std::string& script, const std::vector<std::string>& arguments);

}  // namespace quire
