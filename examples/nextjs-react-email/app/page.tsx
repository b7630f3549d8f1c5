"use client";

import { type FormEvent, useState } from "react";

const order = { name: "Ada", items: [{ title: "Tea", price: "4.50 EUR" }], total: "4.50 EUR" };

export default function Page() {
  const [message, setMessage] = useState("");

  async function send(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    const { to, number } = Object.fromEntries(new FormData(event.currentTarget));
    const body = JSON.stringify({ to, order: { ...order, number } });
    const response = await fetch("/api/receipt", { method: "POST", body });
    const answer = await response.json();
    setMessage(response.ok ? `Accepted as ${answer.id}` : answer.error);
  }

  return (
    <form onSubmit={send}>
      <label>
        Order <input name="number" defaultValue="1042" required />
      </label>{" "}
      <label>
        Email <input name="to" type="email" required />
      </label>{" "}
      <button>Send the receipt</button>
      <p role="status">{message}</p>
    </form>
  );
}
