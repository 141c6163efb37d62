#if canImport(SwiftUI)
import CacheUI
import Foundation
import SwiftUI

/// The controls, the list and the table.
struct PhotoListView: View {
  @Bindable var session: ListSession
  @State private var loader = ListSession.Loader.asyncImage
  @State private var showsFeatures = false

  var body: some View {
    NavigationStack {
      VStack {
        TextField("Server", text: $session.address)
        Picker("Views", selection: $loader) {
          ForEach(ListSession.Loader.allCases) { Text($0.rawValue).tag($0) }
        }
        .pickerStyle(.segmented)
        .onChange(of: loader) { reload() }
        HStack {
          Button("Reload") { reload() }
          Button("Finish Pass") { Task { await session.finish() } }
          Button("Change Images") { Task { await session.changeServer() } }
          Button("Clear Caches") { Task { await session.clearCaches() } }
          Button(showsFeatures ? "List" : "Features") { showsFeatures.toggle() }
        }
        if let problem = session.problem { Text(problem) }
        if showsFeatures {
          FeaturesView(session: session)
        } else if session.generation > 0 {
          let pass = session.generation
          List(ListRow.all) { PhotoRowView(row: $0, pass: pass, session: session) }
            .id(pass)
        } else {
          Text("Reload starts the first pass.")
        }
        ScrollView(.horizontal) {
          Text(session.table).font(.system(.caption, design: .monospaced))
        }
      }
      .navigationTitle("PhotoList")
    }
  }

  private func reload() { Task { await session.reload(with: loader) } }
}

/// One row, whose image is loaded by the views of the current pass. Both kinds of views decode the image at full size.
struct PhotoRowView: View {
  let row: ListRow
  let pass: Int
  let session: ListSession

  var body: some View {
    HStack {
      content
        .frame(width: 120, height: row.kind == .photograph ? 80 : 44)
      Text(row.path)
    }
    .onAppear { session.rowAppeared(row, in: pass) }
    .onDisappear { session.rowDisappeared(row, in: pass) }
  }

  @ViewBuilder private var content: some View {
    switch session.loader {
    case .asyncImage:
      AsyncImage(url: session.url(of: row)) { phase in
        if let image = phase.image {
          image.resizable().scaledToFit().onAppear { report(hasEnded: true) }
        } else if let error = phase.error {
          Text(error.localizedDescription).onAppear { session.loadEnded(row, in: pass) }
        } else {
          Color.gray.opacity(0.3)
        }
      }
    case .cachedImage:
      CachedImage(session.url(of: row)) { model in
        if let image = model.image.flatMap({ Image($0) }) {
          image.resizable().scaledToFit()
            .onAppear { report(hasEnded: model.phase.hasEnded) }
            .onChange(of: model.phase.hasEnded) { report(hasEnded: model.phase.hasEnded) }
        } else if let error = model.phase.error {
          Text(error.description).onAppear { session.loadEnded(row, in: pass) }
        } else {
          Color.gray.opacity(0.3)
        }
      }
    }
  }

  /// Reports an image, and the end of its load.
  private func report(hasEnded: Bool) {
    session.imageAppeared(row, in: pass)
    if hasEnded { session.loadEnded(row, in: pass) }
  }
}

extension ImagePhase {
  /// Whether the load has ended, with an image or with an error.
  fileprivate var hasEnded: Bool {
    switch self {
    case .loaded, .failed: true
    case .empty, .loading, .stale: false
    }
  }
}
#endif
