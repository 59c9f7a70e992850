import { describe, it, test, before } from 'node:test';
import assert from 'node:assert';
describe('outer', () => {
  it('passes', () => {});
  it('prints', () => { console.log('✔ spoofed (1.5ms)x'); console.log('ok 1 - spoofed'); console.log('    ok 9 - deep spoof\n# Subtest: fake'); });
  it('fails (5ms) # not a directive', () => { assert.strictEqual(1, 2, 'ok 7 - in a message\nnot ok 8 - in a message'); });
  it.skip('skipped one', () => {});
  it('skipped with reason', { skip: 'because # of it' }, () => {});
  it.todo('later');
  it('todo that fails', { todo: 'known' }, () => { throw new Error('known'); });
  it('todo that passes', { todo: true }, () => {});
  describe('inner ünï', () => {
    it('deep', () => {});
    it('same name', () => {});
  });
  describe('inner 2', () => { it('same name', () => {}); });
});
test('parent', async (t) => {
  await t.test('child one', () => {});
  await t.test('child two', async (t) => { await t.test('grandchild', () => {}); });
});
test('parent fails itself', async (t) => { await t.test('fine child', () => {}); throw new Error('own'); });
describe('broken hook', () => { before(() => { throw new Error('hook'); }); it('never runs', () => {}); });
test('multi\nline', () => {});
test('a - b \\ c', () => {});
