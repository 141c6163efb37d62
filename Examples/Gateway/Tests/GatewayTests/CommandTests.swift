import ArgumentParser
import CacheCore
import HTTPServing
import LoopbackOrigin
import NIOCore
import NIOPosix
import Testing

@testable import Gateway
@testable import GatewayServer

@Suite("The command line")
struct CommandTests {
  private static func settings(_ arguments: String) throws -> GatewaySettings {
    let command = try GatewayCommand.parse(arguments.split(separator: " ").map(String.init))
    return try command.settings()
  }

  @Test("the origin is the only required option")
  func defaults() throws {
    let settings = try Self.settings("--origin http://origin.example/")
    #expect(settings.origin.description == "http://origin.example")
    #expect(settings.listen.description == "127.0.0.1:8080")
    #expect(settings.keepsHost)
    #expect(settings.via == nil)
    #expect(settings.status == nil)
    #expect(settings.purgers == .loopback)
  }

  @Test("every option reaches the settings")
  func options() throws {
    let settings = try Self.settings(
      "--origin https://[::1]:8443 --listen :80 --status [::1]:81 --host origin --via cache --forwarded --purge nobody --access-log - --ignore-cookies"
        + " --threads 3 --max-connections 5 --origin-connections 7 --client-timeout 9 --origin-timeout 11 --connect-timeout 13")
    #expect(settings.origin.scheme == "https")
    #expect(settings.origin.authority == "[::1]:8443")
    #expect(settings.listen == HostAndPort(host: "::", port: 80))
    #expect(settings.status?.description == "[::1]:81")
    #expect(!settings.keepsHost)
    #expect(settings.via == "cache")
    #expect(settings.forwards)
    #expect(settings.purgers == .nobody)
    #expect(settings.accessLog == "-")
    #expect(settings.cache?.ignoresCookies == true)
    #expect(settings.threads == 3)
    #expect(settings.maximumConnections == 5)
    #expect(settings.originConnections == 7)
    #expect(settings.clientTimeout == .seconds(9))
    #expect(settings.originTimeout == .seconds(11))
    #expect(settings.connectTimeout == .seconds(13))
  }

  @Test("few descriptors limit the client connections, and leave some for the origin and the cache on disk")
  func descriptors() throws {
    for (descriptors, arguments, connections) in [
      (1_048_576, "", 1_000), (1_024, "", 668), (1_024, "--cache /c", 334), (1_024, "--origin-connections 8", 916),
      (256, "", 128), (1_024, "--status 127.0.0.1:0", 568),
    ] {
      var settings = try Self.settings("--origin http://o \(arguments)")
      settings.limitConnections(descriptors: descriptors)
      #expect(settings.maximumConnections == connections, "\(arguments)")
    }
  }

  @Test(
    "an invalid value is refused with the name of its option",
    arguments: [
      ("", "--origin"), ("--origin origin.example", "--origin"), ("--origin ftp://o", "--origin"),
      ("--origin http://o/path", "--origin"), ("--origin http://u@o", "--origin"), ("--origin http://o:x", "--origin"),
      ("--origin http://o --listen 8080", "--listen"), ("--origin http://o --listen h:70000", "--listen"),
      ("--origin http://o --listen ::1:80", "--listen"), ("--origin http://o --threads 0", "--threads 0"),
      ("--origin http://o --max-connections 0", "--max-connections 0"),
      ("--origin http://o --client-timeout -1", "client-timeout"),
      ("--origin http://o --via a,b", "--via 'a,b'"), ("--origin http://o --purge who", "--purge"),
      ("--origin http://o --host who", "--host"),
    ])
  func refused(arguments: String, word: String) {
    let error = #expect(throws: (any Error).self) { try Self.settings(arguments) }
    #expect(error.map { GatewayCommand.fullMessage(for: $0).contains(word) } == true)
  }

  @Test("a port in use is an error with its address")
  func takenPort() async throws {
    let origin = try await OriginServer.start()
    let address = try #require(OriginAddress("http://127.0.0.1:1"))
    let service = GatewayService(
      settings: GatewaySettings(origin: address, listen: HostAndPort(host: "127.0.0.1", port: origin.port)),
      group: MultiThreadedEventLoopGroup.singleton)
    let error = await #expect(throws: CacheError.self) { try await service.run() }
    #expect(error?.description == "cannot listen on 127.0.0.1:\(origin.port): Address already in use")
    await origin.stop()
  }

  @Test("every option has a help text")
  func help() {
    let help = GatewayCommand.helpMessage()
    for option in [
      "--origin", "--listen", "--host", "--via", "--forwarded", "--status", "--access-log", "--purge", "--threads",
      "--max-connections", "--client-timeout", "--origin-timeout",
    ] { #expect(help.contains(option)) }
  }
}
