#if Demo
import ArgumentParser
import Etagere

/// The options that say what is printed. Every command has them, with the same meaning.
struct ReportingOptions: ParsableArguments {
  @Flag(help: "Print JSON: one document on a line, or one line for each resource or entry.")
  var json = false

  @Flag(name: .shortAndLong, help: "Print only results and errors: no headings, notes or progress.")
  var quiet = false

  @Flag(
    name: .shortAndLong,
    help: "Describe the work on standard error: requests, responses, Cache-Status, stored entries.")
  var verbose = false

  func validate() throws {
    if quiet, verbose { throw ValidationError("--quiet and --verbose exclude each other") }
  }

  /// Prints a result, unless JSON is printed.
  func result(_ line: String) {
    if !json { Console.say(line) }
  }

  /// Prints a line between results that only explains them.
  func heading(_ line: String) {
    if !json, !quiet { Console.say(line) }
  }

  /// Writes a note to standard error.
  func note(_ line: String) {
    if !quiet { Console.writeError(line + "\n") }
  }

  /// Writes a line about a step of the work to standard error, as `curl -v` does.
  func trace(_ line: @autoclosure () -> String) {
    if verbose { Console.writeError("* \(line())\n") }
  }

  /// Whether a progress bar is drawn. It would only hide the lines of `--verbose`.
  var showsProgress: Bool { !quiet && !verbose && Console.isErrorTerminal }

  /// Closes a manager, and completes the output of `--verbose`.
  func close(_ manager: ResourceManager) async {
    await manager.close()
    (manager.configuration.observer as? CacheTrace)?.flush()
  }

  /// Returns the downloader, or one that writes each request and response to standard error.
  func tracing(_ downloader: any Downloader) -> any Downloader {
    verbose ? TracingDownloader(base: downloader) : downloader
  }

  /// Returns the observer, or one that writes how the cache handled each load to standard error.
  func tracing(_ observer: (any LoadObserver)?) -> (any LoadObserver)? {
    verbose ? CacheTrace(next: observer) : observer
  }
}
#endif
