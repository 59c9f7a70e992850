RSpec.describe Array do
  describe "#push" do
    it("adds") { expect([].push(1)).to eq [1] }
    it("fails (FAILED - 9)") { expect(1).to eq 1 }
    it("prints") { puts "Fake group";  puts "Failures of nothing" }
  end
  context "with a broken set-up" do
    before { raise "set-up" }
    it("never runs") { }
  end
  context "with a broken before(:all)" do
    before(:all) { raise "all" }
    it("one") { }
    it("two") { }
  end
  it "same" do end
  it "same" do raise "x" end
  it "todo"
  it("pending but passes", pending: "bug") { }
  it("pending and fails", pending: "bug") { raise "y" }
  it { is_expected.to eq [] }
end
