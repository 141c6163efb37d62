import ArgumentParser
import Etagere
import Foundation

/// `Thumbnails`: makes thumbnails of a folder of images or of a list of URLs. Later runs make only those whose image has changed.
@main
struct ThumbnailsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "thumbnails", abstract: "Makes thumbnails of a folder of images or of a list of URLs.",
    discussion: """
      A source is a folder, an image, an http or https URL, a file with one image or URL per line (UTF-8), or - for such a list on \
      standard input. A thumbnail is made again only if its image has changed. A URL is revalidated with a conditional request, and a \
      file is compared by size, time and inode.

      Exit status: 0 if every image has a thumbnail, 1 if some failed, 64 if the command line is invalid (EX_USAGE), 66 if a source \
      cannot be read (EX_NOINPUT), 73 if the output or the cache cannot be used (EX_CANTCREAT), 130 after an interruption. Every \
      thumbnail file is complete, even after an interruption.
      """)

  @Argument(help: "Folders, images, URLs, or lists of them.")
  var sources: [String]

  @Option(help: ArgumentHelp("The folder for the thumbnails.", valueName: "folder"))
  var out: String

  @Option(help: ArgumentHelp("The largest size in pixels: 400 or 400x300. No image is enlarged.", valueName: "size"))
  var size = ThumbnailSize(width: 400, height: 400)

  @Option(help: "The format of the thumbnails: \(ThumbnailFormat.names).")
  var format = ThumbnailFormat.jpeg

  @Option(help: ArgumentHelp("The quality, from 1 (smallest file) to 100 (best image).", valueName: "n"))
  var quality = 80

  @Option(help: ArgumentHelp("The number of images that are decoded at the same time.", valueName: "n"))
  var jobs = min(256, ProcessInfo.processInfo.activeProcessorCount)

  @Option(
    help: ArgumentHelp(
      "The folder of the cache, which later runs need (default: .thumbnails in the output folder).", valueName: "folder"))
  var cache: String?

  func validate() throws {
    guard !sources.isEmpty else { throw ValidationError("no source is given") }
    // A script with an unset variable must not use the current folder.
    guard !sources.contains(""), out != "", cache != "" else { throw ValidationError("a path cannot be empty") }
    guard (1...100).contains(quality) else { throw ValidationError("--quality \(quality) is not between 1 and 100") }
    guard (1...256).contains(jobs) else { throw ValidationError("--jobs \(jobs) is not between 1 and 256") }
  }

  /// The settings that the options state.
  var settings: ThumbnailSettings {
    let output = URL(filePath: out, directoryHint: .isDirectory)
    return ThumbnailSettings(
      output: output,
      cache: cache.map { URL(filePath: $0, directoryHint: .isDirectory) }
        ?? output.appending(path: ".thumbnails", directoryHint: .isDirectory),
      thumbnail: Thumbnail(size: size.sizing, encoder: ImageEncoder(format.format, quality: quality)), jobs: jobs)
  }

  func run() async throws {
    ImageDecoder.discardLibraryMessages()
    let images = try Self.orExit(66) { () throws(CacheError) in  // EX_NOINPUT
      var list = ImageList(except: settings.output)
      for source in sources { try list.add(source) }
      return list.named(settings.thumbnail.encoder.format.fileExtension)
    }
    let run = try Self.orExit(73) { () throws(CacheError) in  // EX_CANTCREAT
      try ThumbnailRun(settings, network: Network.engine())
    }
    let report = ProgressReport(total: images.count)
    let summary = await Interruption.cancelling { await run.make(images, report) }
    await report.end(summary)
    throw summary.exitCode
  }

  /// Runs a step. If it fails, prints the error and ends the command with a status of sysexits.h.
  private static func orExit<Value>(_ status: Int32, _ step: () throws(CacheError) -> Value) throws -> Value {
    do {
      return try step()
    } catch {
      ProgressReport.complain(error.description)
      throw ExitCode(status)
    }
  }
}
