defmodule Page do
  def render(assigns) do
    ~H"""
    <h1 class={@title}>#{not_interpolated} \</h1>
    "quoted" and ""
    """
  end

  def sigils do
    a = ~s"""
    interpolated #{Enum.join(~w[a b c], "#{", "}")}
    """
    b = ~c(char list)
    c = ~T[12:00:00] ; d = ~N"2024-01-01 00:00:00"
    {a, b, c, d, }
  end

  @spec nested((integer -> boolean), [atom()]) :: (-> any) | none
  def nested(f, _), do: f
end
