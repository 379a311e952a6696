defmodule Shop.Counter do
  @moduledoc """
  Counts things in a "process".

      iex> Shop.Counter.start_link(name: :c)
  Uses #{inspect(GenServer)} and # a mark, ##
  ##
  ""
  """
  use GenServer, restart: :transient
  alias Shop.{Item, Order.Line}
  import Kernel, except: [length: 1]
  require Logger

  @type t :: %__MODULE__{count: non_neg_integer(), data: map}
  @default_step 1_000
  defstruct count: 0, data: %{}

  @doc false
  @spec start_link(keyword()) :: {:ok, pid} | {:error, term}
  def start_link(opts \\ []) when is_list(opts) do
    GenServer.start_link(__MODULE__, %{step: @default_step}, opts)
  end

  @impl true
  def handle_call({:add, item}, _from, %{count: count} = state) when count >= 0 and not is_nil(item) do
    case Map.fetch(state.data, item) do
      {:ok, old} ->
        Logger.debug "again: #{item} #{old + 1}"
        {:reply, :again, %{state | count: count + 1}}
      :error -> {:reply, :new, Map.put(state, :data, %{item => 1, "x" => 2, last: item})}
    end
  end

  defp do_it?(x), do: x != nil && end_of!(x) || trueish
  defdelegate size(t), to: Map
end
