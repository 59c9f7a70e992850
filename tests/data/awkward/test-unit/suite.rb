require "test/unit"
class TestSample < Test::Unit::TestCase
  test("with spaces: F") { assert true }
  def test_fail; assert_equal 1, 2; end
  def test_error; raise "boom"; end
  def test_omit; omit "later"; end
  def test_pend; pend "todo"; end
  def test_notify; notify "note"; assert true; end
  def test_spoof; puts "test_fake:\t.: (0.1)"; assert true; end
  class Inner < Test::Unit::TestCase
    def test_same; assert true; end
  end
end
class TestOther < Test::Unit::TestCase
  def setup; raise "set-up"; end
  def test_same; assert true; end
end
