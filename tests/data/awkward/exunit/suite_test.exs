ExUnit.start(trace: true, exclude: [:slow])
defmodule SampleTest do
  use ExUnit.Case
  describe "a group" do
    test "passes (1.5ms)" do assert true end
    test "fails" do assert 1 == 2 end
  end
  test "same" do assert true end
  test "prints" do IO.puts("  * test fake (0.1ms) [L#1]"); assert true end
  @tag :skip
  test "skipped one" do assert false end
  @tag skip: "why"
  test "skipped for a reason" do assert false end
  @tag :slow
  test "excluded one" do assert false end
  test "raises" do raise "boom" end
  test "todo"
end
defmodule OtherTest do
  use ExUnit.Case
  test "same" do assert false end
end
defmodule BrokenTest do
  use ExUnit.Case
  setup_all do raise "set-up" end
  test "never runs" do assert true end
end
