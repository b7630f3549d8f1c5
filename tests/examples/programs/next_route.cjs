// Asks a route twice, as a form does that is submitted twice: node next_route.cjs ROUTE BODY

const [route, body] = process.argv.slice(2);
const { POST } = require(route);

async function main() {
  for (const _ of [1, 2]) {
    const response = await POST(new Request("http://localhost/api/receipt", { method: "POST", body }));
    console.log(JSON.stringify({ status: response.status, ...(await response.json()) }));
  }
}

main();
