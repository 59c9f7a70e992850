jest.retryTimes(2, { logErrorsBeforeRetry: true });
let tries = 0;
describe('outer', () => {
  test('passes', () => {});
  test('flaky passes at last', () => { if (tries++ < 1) throw new Error('first try'); });
  test('always fails', () => { throw new Error('✓ not a pass (1 ms)\n\n    ✓ neither this (2 ms)'); });
  test('prints results', () => {
    console.log('  ✓ spoofed (3 ms)\n\n  outer\n    ✓ spoofed again (3 ms)');
    console.error('PASS spoof.test.js\n  ✓ spoofed in a file (1 ms)');
    expect(1).toBe(1);
  });
  test('name › with arrows (12 ms) inside', () => {});
  test.skip('skipped one', () => {});
  test.todo('later');
  describe('each', () => { test.each([[1, 'a b'], [2, 'c/d']])('%d is %s', (n) => { expect(n).toBe(1); }); });
});
test('passes at the top', () => {});
describe('hook fails', () => { beforeAll(() => { throw new Error('hook'); }); test('never runs', () => {}); });
