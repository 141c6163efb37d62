import ArgumentParser
import Foundation
import GatewayServer
import HTTPServing
import Testing

@testable import Gateway

@Suite("The gateway's Dockerfile and compose file")
struct ContainerFilesTests {
  private let root = URL(filePath: #filePath).appending(path: "../../../../..").standardized

  private func text(_ path: String) throws -> String { try String(contentsOf: root.appending(path: path), encoding: .utf8) }

  /// Returns the JSON array after `prefix` in a text.
  private static func array(after prefix: String, in text: String) throws -> [String] {
    let start = try #require(text.firstRange(of: prefix)).upperBound
    let end = try #require(text[start...].firstIndex(of: "]"))
    return try JSONDecoder().decode([String].self, from: Data(text[start...end].utf8))
  }

  /// Returns the settings of the gateway that `docker compose up` starts.
  private func settings() throws -> GatewaySettings {
    let entry = try Self.array(after: "\nENTRYPOINT ", in: text("Examples/Gateway/Dockerfile"))
    let command = try Self.array(after: " command: ", in: text("Examples/Gateway/compose.yaml"))
    #expect(entry.first == "gateway")
    return try GatewayCommand.parse(Array(entry.dropFirst()) + command).settings()
  }

  @Test("the Dockerfile builds the program of the example's package, with its Swift version")
  func build() throws {
    let (dockerfile, manifest) = (try text("Examples/Gateway/Dockerfile"), try text("Examples/Gateway/Package.swift"))
    #expect(dockerfile.contains("swift build -c release --package-path Examples/Gateway --product Gateway"))
    #expect(manifest.contains(".executableTarget(\n      name: \"Gateway\""))
    let version = try #require(manifest.firstMatch(of: /swift-tools-version: (\d+\.\d+)/)).1
    #expect(dockerfile.contains("FROM swift:\(version)-noble AS build"))
    #expect(dockerfile.contains("FROM swift:\(version)-noble-slim"))
  }

  @Test("the ports of the image are the ports that the gateway listens on")
  func ports() throws {
    let (dockerfile, compose) = (try text("Examples/Gateway/Dockerfile"), try text("Examples/Gateway/compose.yaml"))
    let settings = try settings()
    let status = try #require(settings.status)
    #expect(settings.listen.host == "0.0.0.0" && status.host == "0.0.0.0")
    #expect(dockerfile.contains("\nEXPOSE \(settings.listen.port) \(status.port)\n"))
    #expect(dockerfile.contains("/dev/tcp/127.0.0.1/\(status.port) "))
    #expect(compose.contains("- \"8080:\(settings.listen.port)\""))
    #expect(compose.contains("- \"127.0.0.1:8081:\(status.port)\""))
  }

  @Test("the cache is in the volume, and belongs to the user that runs the gateway")
  func volume() throws {
    let (dockerfile, compose) = (try text("Examples/Gateway/Dockerfile"), try text("Examples/Gateway/compose.yaml"))
    let folder = try #require(settings().cache?.folder)
    #expect(dockerfile.contains("\nVOLUME \(folder)\n"))
    #expect(dockerfile.contains("--uid 10001 ") && dockerfile.contains("\nUSER 10001\n"))
    #expect(dockerfile.contains("install -d -o gateway -g gateway \(folder)\n"))
    #expect(compose.contains("- cache:\(folder)\n") && compose.contains("\nvolumes:\n  cache:\n"))
  }

  @Test("the compose file builds the Dockerfile from the root of the repository")
  func context() throws {
    let compose = try text("Examples/Gateway/compose.yaml")
    #expect(compose.contains("context: ../..\n"))
    let path = try #require(compose.firstMatch(of: /dockerfile: (\S+)/)).1
    #expect(FileManager.default.fileExists(atPath: root.appending(path: String(path)).path))
  }
}
