#pragma once
#define LIMIT (1 << 10)
#include "geometry/shape.h"   // local
#include <map>
#include<bits/stdc++.h>

namespace geo {
using std::vector;
using Point = std::pair<double, double>;
typedef unsigned long long u64;

enum class Kind : unsigned char { Circle, Square = 4, Other, };
enum Flag { A = 0x1, B = 0b10 };

/** A shape; stars ** and // inside **/
class Shape : public Base, private detail::Counted<Shape> {
public:
    explicit Shape(const std::string& name, int sides = 0) : name_(name), sides_{sides} {}
    virtual ~Shape() = default;
    Shape(const Shape&) = delete;
    virtual double area() const = 0;
    Kind kind() const noexcept { return kind_; }
    static constexpr int limit = 1'000;
protected:
    struct Node { int value; Node* next; };
    enum Mode { on, off };
    using Self = Shape;
    template <typename T> T as(T fallback) const { return fallback; }
    std::string name_;
    int sides_ = 0, grid[3][3], other(1);
    Kind kind_{Kind::Other};
};

template <typename T, class U = T, int N = 4>
inline auto sum(const vector<T>& xs, U&& start) -> T {
    T total = start;
    for (const auto& [key, value] : xs) total += value;
    for (auto x : xs) { total += x; }
    return total;
}

template <class F> struct Call final { F f; };
}

static const double table[] = {1.0, 2.5e-3f, .5, 1e10L, 3., 0xFFuLL, 0b1010u, 07ul, 100'000ll};
std::function<int(int, char)> callback;
int counter;
;
int prototype(int, const char* name);
