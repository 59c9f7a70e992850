require "minitest/autorun"
class TestSample < Minitest::Test
  def test_prints_before; puts "noise"; assert true; end
  def test_spoof; puts "TestSample#test_fake = 0.00 s = ."; assert true; end
  def test_spoof_lines; puts; puts "TestSample#test_other = 0.00 s = ."; flunk; end
  def test_no_newline; print "no newline"; end
  def test_error; raise "boom"; end
  def test_skip; skip "later"; end
  define_method("test_with spaces = and # marks") { assert true }
  def teardown; raise "teardown" if name == "test_torn"; end
  def test_torn; assert true; end
end
describe "outer thing" do
  describe "inner (x)" do
    it "works. = F" do _(1).must_equal 1 end
    it "fails" do _(1).must_equal 2 end
    it "has no body"
  end
end
