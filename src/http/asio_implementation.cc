// The compiled part of Boost.Asio and Boost.Beast, once, so that the other sources build fast.
#include <boost/asio/impl/src.hpp>
#include <boost/beast/src.hpp>
