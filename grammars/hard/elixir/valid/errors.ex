defmodule Errors do
  defexception [:message, "quoted key": 1, nil: 2, end: 3]

  defmacro unless(clause, do: expression) do
    quote do
      if(!unquote(clause), do: unquote(expression))
    end
  end

  def run(fun, args \\ [timeout: 5]) do
    try do
      fun.(args[:timeout])
    rescue
      e in [ArgumentError, RuntimeError] -> reraise e, __STACKTRACE__
      KeyError -> :error
    catch
      :exit, reason -> {:exit, reason}
      x -> x; y
    else
      :ok -> true
      {:ok, a} when a > 0 ->
        -a
    after
      IO.puts(:stderr, "done")
    end
  end

  def wait do
    receive do
      {^ref, %Item{name: n, data: %{"k" => [h | _]}}} -> {n, h}
      :"quoted atom" -> :+
      :{} -> false
    after 5_000 -> nil
    end

    with {:ok, x} <- fetch(:a), # comment
         %{b: y} <- x,
         (z when z != y) <- fetch! do
      Enum.map(list, fn {k, v} -> k.end + v.do.(1) ; _ -> 0 end)
    else
      _ -> for(<<c <- "bits">>, c > ?a, do: c)
    end
  end
end
