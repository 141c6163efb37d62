#if Thumbnails
import ArgumentParser
import Etagere
import Foundation

/// `Thumbnails`: a folder of pictures, or a list of URLs, in; thumbnails out. On the second run only what has changed is made
/// again.
@main
struct ThumbnailsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "thumbnails", abstract: "Makes thumbnails of a folder of pictures, or of a list of URLs.",
    discussion: """
      Each source is a folder, a picture, an http or https URL, a file with one of these a line, or - for such a list on standard input. What was made once is made \
      again only when its picture has changed: a server is asked with If-None-Match, a file by its size, time and number.

      Exit status: 0 when there is a thumbnail of everything, 1 when something failed (the rest is done all the same), 64 when the command line is wrong, 130 \
      when it was interrupted: what is there then is whole.
      """)

  @Argument(help: "Folders, pictures, URLs, or lists of them.")
  var sources: [String]

  @Option(help: ArgumentHelp("Where the thumbnails go.", valueName: "folder"))
  var out: String

  @Option(help: ArgumentHelp("They fit into so many pixels: 400, or 400x300. No picture is enlarged.", valueName: "size"))
  var size = ThumbnailSize(width: 400, height: 400)

  @Option(help: "What they are written as: \(ThumbnailFormat.names).")
  var format = ThumbnailFormat.jpeg

  @Option(help: ArgumentHelp("From 1, the smallest file, to 100, the best picture.", valueName: "n"))
  var quality = 80

  @Option(help: ArgumentHelp("Pictures that are made at the same time.", valueName: "n"))
  var jobs = ProcessInfo.processInfo.activeProcessorCount

  @Option(
    help: ArgumentHelp(
      "Where is kept what the next run needs; .thumbnails in the output folder, unless said otherwise.", valueName: "folder"))
  var cache: String?

  func validate() throws {
    guard !sources.isEmpty else { throw ValidationError("there is nothing to make thumbnails of") }
    guard (1...100).contains(quality) else { throw ValidationError("--quality takes a number from 1 to 100") }
    guard (1...256).contains(jobs) else { throw ValidationError("--jobs takes a number from 1 to 256") }
  }

  /// What the options say.
  var settings: ThumbnailSettings {
    let output = URL(filePath: out, directoryHint: .isDirectory)
    return ThumbnailSettings(
      output: output,
      cache: cache.map { URL(filePath: $0, directoryHint: .isDirectory) }
        ?? output.appending(path: ".thumbnails", directoryHint: .isDirectory),
      thumbnail: Thumbnail(size: size.sizing, encoder: ImageEncoder(format.format, quality: quality)), jobs: jobs)
  }

  func run() async throws {
    let run: ThumbnailRun
    do {
      var list = PictureList(except: settings.output)
      for source in sources { try list.add(source) }
      run = try ThumbnailRun(settings, network: Network.engine())
      let pictures = list.named(settings.thumbnail.encoder.format.fileExtension)
      let report = ProgressReport(total: pictures.count)
      let summary = await Interruption.cancelling { await run.make(pictures, report) }
      await report.end(summary)
      throw summary.exitCode
    } catch let error as CacheError {
      ProgressReport.complain(error.description)
      throw ExitCode.failure
    }
  }
}
#else
/// Without the trait `Thumbnails` the package stays free of swift-argument-parser and libvips, and this program has nothing to
/// do.
@main
struct ThumbnailsCommand {
  static func main() { print("Thumbnails was built without its trait: swift build --traits Thumbnails") }
}
#endif
