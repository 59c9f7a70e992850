<?php

namespace Tests;

use PHPUnit\Framework\TestCase;

final class TearDownTest extends TestCase
{
    protected function tearDown(): void { throw new \RuntimeException("torn"); }
    public function testBodyPasses(): void { $this->assertTrue(true); }
}
