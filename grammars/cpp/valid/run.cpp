int main(int argc, char** argv) {
    long long n = 0; unsigned int k = (unsigned int) argc;
    const char* text = "tab\t quote\" nul\0 hex\x41 uni\u00e9 \U0001F600" u8"joined" L"wide";
    auto raw = R"(raw "text" with ) and (parens))";
    char c = '\'', d = 'x', e = L'\n';
    using namespace std;
    struct Pair { int a; int b; };
    do { n++; } while (n < 10 && !(n % 7 == 0) || not false);
    do --n; while (n > 5);
    if (auto it = m.find(3); it != m.end()) cout << it->second << "\n" << endl; else if (argc > 1) return 1; else { n = ~n; }
    if constexpr (sizeof(int) == 4) n = sizeof n;
    while (int* p = next()) { delete p; delete[] p; }
    for (;;) { if (n) break; else continue; }
    for (int i = 0, j = 9; i <= j; ++i) swap(a[i], a[j]);
    for (n = 0; n < 3; n += 1) ;
    try { throw runtime_error("bad"); } catch (const exception& ex) { throw; } catch (...) { n = n ? 1 : 2; }
    auto f = [&, k](int x) mutable -> int { return x + k; };
    auto g = [=] { return 0; }; auto h = [a, &b, c = move(d)] { }; auto z = [&]() { };
    Node* node = new Node{1, nullptr}; int* arr = new int[10]; auto q = new Foo(1, 2); auto s = new Bar;
    x = static_cast<double>(n) / max<int>(1, 2) - vector<int>{1, 2, 3}[0] + Point{1, 2}.first;
    b = a and c or d xor e; bits ^= b & c | d << 2 >> 1; t = a <=> b; *ptr = &x - -y + +z; (void) argc;
    ::std::sort(v.begin(), v.end(), greater<>()); array<int, 3> trio = {1, 2, 3,};
    int m[2][2] = {{1, 2}, {3, 4}}; typename T::value_type w; int const cc = 1;
    switch (n) { default: return{}; }
    switch (n % 3) { case 0: n = 1; break; case 1: case 2: { n = 2; } default: ; }
    return(n);
}
