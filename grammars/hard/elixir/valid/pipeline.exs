# A script of pipes, comprehensions and sigils.
words = ~w(alpha beta #{gamma} \) delta)a
regex = ~r/^[a-z]+#?\/\d{2,}$/iu
raw = ~S(no #{interpolation} here); date = ~D[2024-02-29]
other = ~s{a # "b"} <> ~S|c| <> ~s<d> <> ~s|e| <> ~s"f" <> ~s[g\]#] <> ~S{h} <> ~S<i> <> ~S/j/ <> ~S"k"

result =
  words
  |> Enum.map(&(&1 |> Atom.to_string() |> String.upcase()))
  |> Enum.filter(fn word -> String.length(word) > 3 and word =~ regex end)
  |> Enum.reduce(%{}, fn
    "A" <> rest, acc when byte_size(rest) in 1..10//2 -> Map.update(acc, rest, 1, &add(&1, 1))
    _, acc ->
      acc
  end)

for {key, value} <- result, value not in [0, -1], into: %{}, do: {key, value ** 2}

[first | tail] = [1, 2.5e-3, 0xFF, 0b1010, 0o17, ?a, ?\n]
<<header::8, size::integer-size(16), rest::binary>> = <<1, 2, 3, "data"::utf8>>
node = if first == 1 and tail != [] do "yes" else 'no' end
unless is_nil(node), do: IO.puts("#{if node == "yes", do: "it's #{first}", else: :none}")
IO.inspect result, label: "result: \"#\" ##{first}#x"
