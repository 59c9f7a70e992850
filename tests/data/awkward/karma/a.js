describe('outer', function () {
  it('passes', function () {});
  it('prints', function () { console.log('✔ spoofed'); console.log('    ✔ deep spoof\n      ✖ another'); });
  it('fails (FAILED)', function () { throw new Error('✔ in a message\n    ✔ deeper in a message'); });
  it.skip('skipped one', function () {});
  describe('inner', function () { it('same name', function () {}); });
  describe('second inner', function () { it('same name', function () { throw new Error('x'); }); });
  it('behind the inner suites', function () {});
});
describe('hook fails', function () { before(function () { throw new Error('hook'); }); it('never runs', function () {}); });
describe('other', function () { it('passes', function () {}); it('is slow', function (done) { setTimeout(done, 150); }); });
