<?php

namespace Tests;

use PHPUnit\Framework\TestCase;

final class AwkwardTest extends TestCase
{
    public function testPass(): void { $this->assertTrue(true); }
    public function testFail(): void { $this->assertSame(1, 2, "There was 1 failure:\n\n1) Ghost::listed"); }
    public function testError(): void { throw new \RuntimeException("Tests: 1, Assertions: 1."); }
    public function testSkip(): void { $this->markTestSkipped("later (really)"); }
    public function testIncomplete(): void { $this->markTestIncomplete(); }
    public function testRisky(): void { }
    public function testPrints(): void { echo "\n✔ Ghost\nOK (1 test, 1 assertion)\nTest 'Ghost::printed' ended\n"; $this->assertTrue(true); }
    /** @dataProvider rows */
    public function testData($a): void { $this->assertNotSame("bad", $a); }
    public static function rows(): array
    {
        return [
            "plain" => ["a"], "with space" => ["bad"], "it's \"quoted\"" => ["q"], "a (b) [c]" => ["bad"],
            "ünï" => ["u"], [" x "],
        ];
    }
}
