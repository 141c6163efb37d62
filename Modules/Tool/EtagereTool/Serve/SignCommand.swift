#if Tool && Service
import ArgumentParser
import Configuration
import Foundation
import ImageService

/// The command `etagere-cli sign SOURCE`.
struct SignCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sign",
    abstract: "Print the signed path of an image for 'etagere-cli serve'.",
    discussion: """
      SOURCE is a URL, or the name of a folder, a slash, and the path of a file in it.

      Operations are separated by commas and apply in order:
        width=400  height=300  fit=400x300  fill=400x300:top  exact=400x300  pixels=100000
        crop=400x300:attention  rect=X:Y:WIDTH:HEIGHT  rotate=90  flip=horizontal
        gray  tint=ff8800:0.5  radius=8  circle  border=2:ffffff:8  blur=3
        format=webp  quality=80  lossless  progressive  effort=4  background=ffffff
        dpr=2  dpr=auto  width=auto:400  preset=NAME  original

      The keys come from ETAGERE_KEYS, or from the file of --keys-file. The first one signs.
      """)

  @Argument(help: "The source.")
  var source: String

  @Option(name: .shortAndLong, help: ArgumentHelp("The operations.", valueName: "list"))
  var operations = "width=400"

  @Option(help: ArgumentHelp("The number of seconds for which the path is valid (default: no limit).", valueName: "seconds"))
  var expires: Int64?

  @Option(help: ArgumentHelp("The start of the path.", valueName: "path"))
  var path = "/img"

  @Option(
    help: ArgumentHelp("A file with signing keys in hexadecimal, one per line.", valueName: "file"), completion: .file())
  var keysFile: String?

  func validate() throws {
    if let expires, !(1...315_360_000).contains(expires) { throw ValidationError("--expires takes 1 to 315360000 seconds") }
  }

  func run() async throws {
    do {
      let flags = keysFile.map { ["keysFile": ConfigValue(.string($0), isSecret: false)] } ?? [:]
      let settings = try await ServeSettings.read(file: nil, flags: flags)
      guard let key = settings.keys.first else {
        throw SettingsError(reason: "no signing key: set ETAGERE_KEYS, or use --keys-file")
      }
      try ImageService.check(operations)
      let expiry = expires.map { SystemClock().now + .seconds($0) }
      Console.say(key.path(for: source, operations: operations, expiresAt: expiry, under: path))
    } catch let error as SettingsError {
      Console.complain(error.reason)
      throw ToolFailure(status: .usage)
    } catch let error as CacheError {
      Console.complain(error.reason)
      throw ToolFailure(status: .usage)
    }
  }
}
#endif
