import ArgumentParser
import CacheCore
import ETagValidation
import Testing

@testable import Gateway
@testable import GatewayServer

@Suite("The cache options of the gateway")
struct CacheOptionsTests {
  @Test("each option changes its setting, and invalid sizes are refused")
  func options() throws {
    func cache(_ arguments: String...) throws -> CacheSettings? {
      try GatewayCommand.parse(["--origin", "http://h"] + arguments).settings().cache
    }
    #expect(try cache()?.mode == .shared)
    #expect(try cache("--mode", "off") == nil)
    #expect(try cache()?.collapses == true && cache("--collapse", "off")?.collapses == false)
    let settings = try cache("--mode", "private", "--cache", "/c", "--memory", "64M", "--disk", "2G", "--heuristics", "on")
    #expect(settings?.mode == .private && settings?.folder == "/c" && settings?.guesses == true)
    #expect(settings?.memory == 64 << 20 && settings?.disk == 2 << 30)
    for size in ["", "M", "-1", "1.5G", "99999999999G", "4T"] {
      #expect(throws: (any Error).self) { try cache("--memory", size) }
    }
    #expect(ByteSize(256 << 20).description == "256M" && ByteSize(1_000).description == "1000")
  }
}
