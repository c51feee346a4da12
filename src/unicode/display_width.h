// src/unicode/ holds what every text needs, whoever reads it: UTF-8, properties of characters, and widths in a terminal.
//
// How many cells of a terminal a text takes: 2 for wide characters and emoji, 0 for what joins the character before it.
//
// A cluster is what people take for one character: a letter with its accents, a family joined from four emoji, a flag of two
// letters. Terminals differ in how they draw the longer ones; the cells here are those of the cluster drawn as one.
// Pure functions, any thread. Source: Unicode 15 through utf8proc (UAX 11, UAX 29).
#pragma once

#include <cstddef>
#include <string_view>

namespace quire {

struct Cluster {
  size_t bytes = 0;
  int cells = 0;  // 0 for control characters
};

// The first cluster of `text`, which is not empty. What is no UTF-8 takes a cell for each sequence. The last cluster of a
// text that goes on may grow.
Cluster first_cluster(std::string_view text);

// Of all of it, as if on one line.
size_t display_width(std::string_view text);

}  // namespace quire
