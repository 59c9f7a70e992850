module.exports = { testDir: __dirname, workers: 1, retries: 1, reporter: 'list', projects: [{ name: 'one' }, { name: 'two', grep: /passes|top/ }] };
